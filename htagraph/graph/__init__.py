"""What depended on what: activities, the dependencies between them, the one tree of enclosure, selections."""
