"""What a batch is made of and how it changes, by whoever changes it: the scheduler or an operator."""
