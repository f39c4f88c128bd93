"""A whole wave on a simulated tenant, through every real part and over the product's public faces."""
