"""The ten axes of the AAI scale, with intervals: from episodes, events and evidence files."""
