"""The task. Importing it makes `gymnasium.make("protege/Tempest-v0")` and `make_vec` work."""

from gymnasium.envs.registration import register

# As text, so that only making an environment loads the game and what compiles it.
register(
    id="protege/Tempest-v0",
    entry_point="protege.games.tempest.task.gym:TempestEnv",
    vector_entry_point="protege.games.tempest.task.gym:TempestVectorEnv",
)
