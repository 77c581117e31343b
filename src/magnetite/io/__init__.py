"""Readers and writers: graphs of other libraries, files of users, and atomic storage."""
