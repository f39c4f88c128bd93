"""The standard functions: what runbooks call without anybody writing code. Every module in here is registered."""
