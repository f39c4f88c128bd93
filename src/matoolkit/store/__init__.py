"""The database: its schema, its transactions, and the queries, grouped by what they are about."""
