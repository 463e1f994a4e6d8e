"""The test ground: a container engine and a Kubernetes cluster on this machine, for the suites that need one.

May live here: what installs, builds, starts and ends an engine, images and a cluster for `tests/containers`
and `tests/k8s`. May not: anything of the product (its images and manifests are only tried here), or a test.
Everything that is slow to make is kept below `$XDG_CACHE_HOME/evenflow`, by version: Debian's root file
system, Go programs, image layers. Everything that runs ends with the process that started it, even if that is
killed. `python -m tests.ground` makes and starts the parts by hand.
"""
