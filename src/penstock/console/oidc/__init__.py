"""Login by OpenID Connect: the authorization code flow with PKCE."""
