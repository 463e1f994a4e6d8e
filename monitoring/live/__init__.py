"""The pipeline at one glance: `picture` from telemetry, `page` for a browser, `top` for a terminal."""
