"""Judges: each looks at one side of the sample and says what does not fit the settings.

Called by `report`.
"""
