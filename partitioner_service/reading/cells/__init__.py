"""Cells of a block: where they are among its bytes, and what becomes of them: text, numbers,
times, lists, reasons.

May live here: what all formats share. May not: the grammar of a format. Called by the formats and by `parse`.
"""
