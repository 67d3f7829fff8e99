module classify

go 1.19
