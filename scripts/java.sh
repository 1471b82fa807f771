#!/usr/bin/env bash
# Checks for Java 17 or newer, which Spark needs, and says how to install it.
set -u
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
major=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
if [ -z "$major" ] || [ "$major" -lt 17 ]; then
    echo "Java 17 or newer is needed (found: ${major:-none}). Install it with 'apt-get install openjdk-17-jre-headless' or set JAVA_HOME." >&2
    exit 1
fi
