"""Exchange Online's command endpoint, with the commands that moving people needs."""
