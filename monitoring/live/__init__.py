"""The pipeline at one glance.

`picture` is made from telemetry, `page` shows it in a browser, `top` in a terminal.
"""
