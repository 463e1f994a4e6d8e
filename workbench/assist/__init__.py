"""Helps a user who begins a query or looks after one: what a topic holds, whether settings fit."""
