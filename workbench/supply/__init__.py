"""What evenflow is made of: bills of materials, and known weaknesses of jars."""
