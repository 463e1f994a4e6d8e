"""How every picture of the project looks: one strong mark, a few named ones, the rest grey. Labels instead of a legend.

Colours and sizes are in `looks`, who gets which in `emphasis`, where words go in `labels`, scales in `axes`. `points`
and `lines` draw panels with them, `page` puts panels together and writes them. Nothing here knows what is drawn.
Needs the extra `plots` (altair draws, vl-convert renders, no browser, no network).
"""
