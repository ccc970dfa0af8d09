"""Gets pending runs to workers: hints by Celery, authority by the claim, repair by the reconciler."""
