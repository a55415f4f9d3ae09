"""``ha doctor``: examines what a contender of this host would need, and says what to do about what is missing."""
