"""Unit tests run on noisy machines and compile kernels on first use: no deadlines."""

from hypothesis import settings

from tests.examples import scaled

settings.register_profile("evenflow", deadline=None, max_examples=scaled(100))
settings.load_profile("evenflow")
