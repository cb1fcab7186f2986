#!/bin/sh
# Run once by the database's own image: a role that owns the site's database and is no superuser, and one that sees less than it.
set -eu
password=$(cat /run/secrets/database_password)
psql -v ON_ERROR_STOP=1 -U postgres -v password="$password" <<'SQL'
CREATE ROLE portal LOGIN PASSWORD :'password';
CREATE ROLE portal_pages NOLOGIN;
GRANT portal_pages TO portal WITH ADMIN OPTION;
CREATE DATABASE portal OWNER portal;
SQL
