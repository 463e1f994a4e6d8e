"""Unit tests run on noisy machines and compile kernels on first use: no deadlines."""

from hypothesis import settings

settings.register_profile("evenflow", deadline=None)
settings.load_profile("evenflow")
