"""The sections of `evenflow.toml`, one in each file: every field with its unit, default and bounds."""
