"""Four real nodes on one Linux machine: systemd machines with sshd and dockerd of their own."""
