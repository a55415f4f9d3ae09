"""What runs beside a job in a drill: who feeds it, who reads, who counts, who strikes."""
