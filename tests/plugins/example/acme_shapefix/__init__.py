"""Rules of ACME: a plugin of shapefix. The package is imported for its checks; `pages` has their pages."""

from acme_shapefix import half_on_cpu as half_on_cpu
