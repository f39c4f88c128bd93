"""Sign-in: tokens for applications and people, signed with keys of the tenant's own."""
