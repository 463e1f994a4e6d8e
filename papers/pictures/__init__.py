"""How the page's pictures are drawn."""
