"""What a job's numbers mean: one file per finding, and in `verbs` what each verb says of its own tables."""
