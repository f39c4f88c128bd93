"""Microsoft Graph, as far as moving people needs it."""
