"""How fast it is, beside others, on one machine in one run: `make bench`. docs/performance.md is what it wrote last."""
