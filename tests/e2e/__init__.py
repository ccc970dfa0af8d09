"""The product as people meet it: `manage.py up` on a folder of its own, a browser, the API and the sockets."""
