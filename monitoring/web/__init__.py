"""What all pages have in common: who may read them, headers, TLS, and a bound on connections.

Here may live what both web servers need: the threaded one of `monitoring.serving` and Faust's. No page is
made here.
"""
