"""SCRAM against the client's half, the example of RFC 7677, and attacks."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.sasl import Login, exchange
from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.scram import (
    MOST_BYTES,
    ScramCredential,
    ScramExchange,
    ScramMechanism,
    credential,
    parse_stored,
    salted,
    stored_text,
)

SHA_256 = ScramMechanism.SCRAM_SHA_256


def known(
    password: str, mechanism: ScramMechanism = SHA_256, iterations: int = 4096
) -> ScramCredential:
    salt = b"0123456789"
    key = salted(mechanism, password, salt, iterations)
    return credential(mechanism, key, salt, iterations)


def server(
    users: dict[str, ScramCredential], mechanism: ScramMechanism = SHA_256, nonce: str = "server"
) -> ScramExchange:
    return ScramExchange(mechanism, users.get, nonce, b"secret of this broker")


def logged_in(exchanged: ScramExchange, login: Login) -> str | None:
    """Runs both halves to the end; the client checks the server's proof as well."""
    client = exchange(login, "client")
    token, step = next(client), None
    while True:
        step = exchanged.step(token)
        try:
            token = client.send(step.answer)
        except StopIteration:
            return step.user


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "zoë"])
def test_client_and_server_authenticate_each_other(mechanism: ScramMechanism, user: str) -> None:
    users = {user: known("pässword", mechanism)}
    login = Login(mechanism.mechanism, user, "pässword")
    assert logged_in(server(users, mechanism), login) == user


def test_the_example_of_rfc_7677_is_reproduced() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users = {"user": credential(SHA_256, salted(SHA_256, "pencil", salt, 4096), salt, 4096)}
    exchanged = server(users, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    challenge = exchanged.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert challenge.answer == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    step = exchanged.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert step.answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert step.user == "user"


@pytest.mark.parametrize("later", [{}, {"alice": known("another")}])
def test_a_user_who_is_changed_during_the_login_is_refused(
    later: dict[str, ScramCredential],
) -> None:
    """A client may take its time for the second message, on a connection that logs in again."""
    users = {"alice": known("secret")}
    exchanged = server(users)
    client = exchange(Login("SCRAM-SHA-256", "alice", "secret"), "client")
    proof = client.send(exchanged.step(next(client)).answer)
    users.clear()
    users |= later
    with pytest.raises(InvalidCredentials):
        exchanged.step(proof)


def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_point() -> None:
    answers = []
    for user in ("alice", "nobody"):
        exchanged = server({"alice": known("secret")})
        client = exchange(Login("SCRAM-SHA-256", user, "wrong"), "client")
        challenge = exchanged.step(next(client)).answer
        answers.append([each[:2] for each in challenge.decode().split(",")])
        with pytest.raises(InvalidCredentials):
            exchanged.step(client.send(challenge))
    assert answers[0] == answers[1]


def test_an_unknown_user_gets_the_same_salt_each_time_and_not_another_users() -> None:
    def challenge(user: bytes) -> bytes:
        return server({}).step(b"n,,n=" + user + b",r=client").answer

    assert challenge(b"a") == challenge(b"a") != challenge(b"b")


@pytest.mark.parametrize("part", ["server", "clientserve", "clientservers", "clientserver,x=y"])
def test_the_nonce_of_the_final_message_must_be_the_whole_one(part: str) -> None:
    """CVE-2024-56128."""
    users = {"alice": known("secret")}
    exchanged = server(users)
    client = exchange(Login("SCRAM-SHA-256", "alice", "secret"), "client")
    final = client.send(exchanged.step(next(client)).answer)
    with pytest.raises(InvalidCredentials):
        exchanged.step(final.replace(b"r=clientserver", f"r={part}".encode()))


def test_another_users_name_as_authorization_id_is_refused() -> None:
    """CVE-2017-12610."""
    users = {"alice": known("secret")}
    with pytest.raises(AuthenticationFailed, match="different from username"):
        server(users).step(b"n,a=admin,n=alice,r=client")
    assert server(users).step(b"n,a=alice,n=alice,r=client").user is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        b"y,,n=alice,r=client",
        b"p=tls-unique,,n=alice,r=client",
        b"n,,n=,r=client",
        b"n,,n=al=ice,r=client",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,m=x,n=alice,r=client",
    ],
)
def test_a_malformed_first_message_is_refused(first: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        server({"alice": known("secret")}).step(first)


@pytest.mark.parametrize("proof", ["", "p=", "p=AAAA", "p=!!!!", "p=" + "A" * 44, "p=AAAA=A"])
def test_a_malformed_proof_is_refused(proof: str) -> None:
    exchanged = server({"alice": known("secret")})
    exchanged.step(b"n,,n=alice,r=client")
    with pytest.raises(InvalidCredentials):
        exchanged.step(f"c=biws,r=clientserver,{proof}".encode())


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=3))
def test_no_bytes_log_in_or_raise_another_error(tokens: list[bytes]) -> None:
    exchanged = server({"alice": ScramCredential(b"salt", b"1" * 32, b"2" * 32, 4096)})
    try:
        for token in tokens:
            assert exchanged.step(token).user is None
    except AuthenticationFailed:
        pass


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_stored_text_matches_kafka(mechanism: ScramMechanism) -> None:
    one = known("secret", mechanism)
    text = stored_text(one)
    assert text.startswith(f"salt={b64encode(one.salt).decode()},stored_key=")
    assert text.endswith(",iterations=4096")
    assert parse_stored(mechanism, text) == one
    assert "secret" not in repr(one)


@pytest.mark.parametrize(
    "change",
    [
        ("iterations=4096", "iterations=4095"),
        ("iterations=4096", "iterations=x"),
        ("salt=", "salz="),
        ("stored_key=", "stored_key=!"),
        ("server_key=", "server_key=AAAA"),
    ],
)
def test_a_damaged_or_weak_stored_credential_is_ignored(change: tuple[str, str]) -> None:
    text = stored_text(known("secret"))
    assert parse_stored(SHA_256, text.replace(*change)) is None
    assert parse_stored(ScramMechanism.SCRAM_SHA_512, text) is None


def test_the_log_line_about_a_long_unknown_name_is_short() -> None:
    exchanged = server({})
    exchanged.step(b"n,,n=" + b"x" * 10_000 + b",r=client")
    with pytest.raises(InvalidCredentials) as refused:
        exchanged.step(b"c=biws,r=clientserver,p=AAAA")
    assert len(refused.value.because) < 200


def test_a_message_that_would_block_the_loop_is_not_parsed() -> None:
    long = f"n,,n={'a' * MOST_BYTES},r=client".encode()
    with pytest.raises(InvalidCredentials, match=f"a message of {len(long)} bytes"):
        server({}).step(long)
    exchanged = server({})
    exchanged.step(f"n,,n={'a' * (MOST_BYTES - 20)},r=client".encode())
    with pytest.raises(InvalidCredentials, match="a message of"):
        exchanged.step(b"c=biws,r=clientserver" + b",a=b" * MOST_BYTES + b",p=AA==")
