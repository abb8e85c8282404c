"""Who may sign in to the pages: staff by a password, owners by GitHub. Built on django-allauth and django-axes."""
