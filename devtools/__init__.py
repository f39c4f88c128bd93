"""What developers need beside the product: shared by tests and benchmarks, never installed."""
