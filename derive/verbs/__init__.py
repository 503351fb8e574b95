"""The verbs: one function a command, with the command's name and arguments, returning one `derive.results.Result`.

They are the top of the package: everything below may be used here, and nothing below imports from here. The public
package `derive` hands them out; the command line parses, calls them and prints.
"""
