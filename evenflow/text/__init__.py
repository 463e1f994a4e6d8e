"""Texts that people or others wrote, read strictly: JSON, options, words that were probably meant; and
columns as JSON.
"""
