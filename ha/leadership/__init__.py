"""Leadership in a program: ``ha.lead``, and the object that it gives a leader."""
