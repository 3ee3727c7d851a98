// Command tagboat promotes container images through a GitOps config repository.
package main

func main() {}
