"""HTA's figures of tables in HTA's shape, for `htagraph/hta` alone; figures of native results lie beside this folder."""
