"""A child of fork() may not use its parent's device: each call tells it so, and the parent goes on."""


def test_the_child_is_refused_and_the_parent_goes_on(host, user, path):
    index = host.gid_index(host.v4, user=user, env=path)
    output = host.run([*host.build.program("fork_child"), "--gid-index", index], user=user, env=path)
    assert "ALLOWED" not in output and output.count(": refused") == 9, output
    assert output.splitlines()[-1] == "parent: ok", output
