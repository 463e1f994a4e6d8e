"""Tests with a real broker and real Spark, in folders by what they hold. Here lie the helpers that several
share.
"""
