"""What every web site of ours rests on; a site brings its pages, and where it keeps who logs in.

A site is made of five things:

1. A database with `reading()` and `writing()`, each a context of an SQLAlchemy connection, and in
   it `accounts.USERS` and `accounts.SESSIONS` (`TABLES.create_all`, or `to_metadata`).
2. Who may log in: a class of `accounts.Accounts[User]` says `kind`, `roles` and `verbs`, and may
   override `check_name`, `note_change` and `note_refused`; passwords are hashed, accounts locked,
   and while somebody guesses there is room for others. Where there are tokens of teams in place of
   accounts, any function of name, password and origin will do that returns a `User`;
   `accounts.Places` keeps room for others there, too.
3. Who is logged in: `sessions.Sessions(database, accounts.find, cookie=...)`. The cookie has a
   name of its own because browsers send those of a machine to each of its ports. Where programs
   have tokens of another kind, override `find(token, for_program=True)`.
4. Pages: `templating.environment(package)` finds templates in the folder `templates` of a package.
   They extend `base.html.j2`, which the site may have of its own, as an extension of
   `web/base.html.j2` with the blocks `home`, `pages`, `action`, `who` and `notice`; so may
   `login.html.j2` and `error.html.j2`. Pieces are in `web/parts.html.j2`. Routers answer by
   `templating.render(request, name, session, ...)` and `go_to`, and ask by what is in `deps`:
   `ThisSite`, `Visitor`, `Person`, `ThisForm`, `ThisUpload`.
5. `deps.Site(name=..., log_in=accounts.log_in, sessions=..., templates=..., static=..., api=...,
   is_public=...)`, or a class of it with what else pages work with, and its `shown` and `close`.

`app.make_app(site, pages, api, names=..., most_message=...)` makes the application: own names only,
headers, sizes, static files (`base.css`, `app.js`, htmx), pages to log in and out, pages of errors;
`app.furnish(app, site, pages)` gives an application that programs call already all but the first.
The router `api` has `route_class=strict.StrictRoute`: JSON is read strictly, and an error is a line
with the `http_status` of the `InputError` that was raised. `deps.session_of_program` says who
calls, by a WebSocket too; one that a page of another site opens is refused, and too long a message
ends it.
`serve.serve(make, host=..., port=..., cert=..., key=..., allow_plain=..., names=..., on_ready=...)`
runs it. The extra `server` is needed by `app`, `deps`, `login`, `security` and `strict`, which are
imported late, and nothing of it when a command line starts.
"""
