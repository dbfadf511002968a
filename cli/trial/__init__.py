"""The trial model: a small OpenAI-compatible HTTP server that needs no key and knows nothing.

It answers by rearranging the words of the question, in French or English, at a readable pace, in every role a think
asks for. The same server misbehaves on command, which is how the tests meet a bad provider.
"""
