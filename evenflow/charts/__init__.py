"""How every picture of the project looks: one strong series, a few named ones, the rest grey.
Labels, not a legend.

`looks` has colours and sizes, `emphasis` decides which series gets which look, `labels` places the words, and
`axes` has the scales. `points` and `lines` draw panels with them. `page` puts panels together and writes
them. Nothing here knows what is drawn. The package needs the extra `plots`: altair draws and vl-convert
renders, without browser or network.
"""
