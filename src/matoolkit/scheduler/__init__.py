"""The part that notices: members who came and went, phases and polls whose time has come, new versions."""
