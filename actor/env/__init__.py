"""Environments: Super Mario Bros. over an emulator core, and a small known-answer corridor.

Importing this package registers `warpzone/SuperMarioBros-v0` with Gymnasium, as Gymnasium expects
of a package of environments; the emulator is imported only when one is built.
"""

from gymnasium.envs.registration import register, registry

MARIO_ENV_ID = "warpzone/SuperMarioBros-v0"

if MARIO_ENV_ID not in registry:
    register(id=MARIO_ENV_ID, entry_point="actor.env.mario_env:MarioEnv")
