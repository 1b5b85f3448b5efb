#!/bin/sh
# The server reads its configuration from the environment.
exec temporal-server start
