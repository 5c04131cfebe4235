"""Pure statistics: intervals and resampling, numbers in, numbers out."""
