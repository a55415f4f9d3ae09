"""Groups: takes a job from one root of a group to another, by a copy and one orderly hand-over. See decision 73."""
