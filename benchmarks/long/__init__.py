"""The parts of `benchmarks.longrun`: the installation, the load, what is looked at meanwhile, and what is thought of it."""
